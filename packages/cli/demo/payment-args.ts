/** The arguments of every tool that moves money. */
export interface PaymentArgs {
  readonly order: string
  readonly amount: number
}

/** The JSON Schema of `PaymentArgs`. */
export const paymentArgs = {
  type: 'object',
  properties: { order: { type: 'string' }, amount: { type: 'number' } },
  required: ['order', 'amount'],
} as const
