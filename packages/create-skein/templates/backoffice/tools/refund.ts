import { defineTool } from '@skein/runtime'
import { z } from 'zod'
import { findOrder, setStatus } from '../shop.ts'

/** A high-risk write: it waits until a person approves exactly these arguments. */
export default defineTool({
  name: 'refund',
  description: 'Pays the money for an order back. A person has to approve it.',
  args: z.object({ order: z.string(), amount: z.number().positive() }),
  risk: 'write_high_risk',
  /** How to undo it; the person who approves is shown this. */
  rollback: ({ order }) => ({ type: 'tool_call', target: 'undo_refund', payload: { order } }),
  /** Asked after a crash in the middle of a call: had it happened? */
  probe: ({ order }) => (findOrder(order).status === 'refunded' ? 'applied' : 'absent'),
  execute: (_, { order: number, amount }) => {
    const order = findOrder(number)
    if (order.status === 'refunded') throw new Error(`Order ${order.number} is refunded already.`)
    if (amount !== order.amount) throw new Error(`Order ${order.number} cost ${order.amount}.`)
    setStatus(order.number, 'refunded')
    return { order: order.number, refunded: order.amount }
  },
})
