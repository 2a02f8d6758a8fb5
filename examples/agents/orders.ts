/** What the shop knows. A real desk would ask its database. */
export interface Order {
  readonly number: string
  readonly item: string
  readonly amount: number
  status: 'on its way' | 'delivered' | 'refunded'
}

const orders = new Map<string, Order>(
  [
    { number: 'O-7', item: 'a brass lamp', amount: 25, status: 'delivered' as const },
    { number: 'O-8', item: 'a set of wool yarn', amount: 12, status: 'on its way' as const },
    { number: 'O-9', item: 'an oak loom', amount: 240, status: 'delivered' as const },
  ].map((order) => [order.number, order]),
)

/** Throws a text that a model can pass on. */
export function findOrder(number: unknown): Order {
  const order = typeof number === 'string' ? orders.get(number.toUpperCase()) : undefined
  if (order) return order
  throw new Error(`There is no order ${String(number)}. Known: ${[...orders.keys()].join(', ')}.`)
}
