/** What one request asked the bank to do. */
export interface Payment {
  readonly type: 'refund' | 'wire' | 'charge' | 'cancel_charge'
  readonly order: string
  readonly amount: number
}

/** Everything that the bank has counted. */
export interface BankBook {
  readonly payments: readonly Payment[]
  /** How many payments were answered. */
  readonly answered: number
  readonly lookups: number
}

/** Asks the bank to pay. Each call of this function is one request. */
export async function pay(payment: Payment): Promise<void> {
  await request('/payments', { method: 'POST', body: JSON.stringify(payment) })
}

/** Asks the bank how often it has paid for an order. */
export async function paymentsOf(order: string): Promise<number> {
  return Number(await request(`/lookup?order=${encodeURIComponent(order)}`))
}

async function request(path: string, init?: RequestInit): Promise<unknown> {
  const url = process.env['DEMO_BANK_URL']
  if (url === undefined) throw new Error('DEMO_BANK_URL is not set; `skein demo` sets it.')
  const response = await fetch(`${url}${path}`, init)
  if (!response.ok) throw new Error(`The bank answers ${response.status}.`)
  return response.json()
}
