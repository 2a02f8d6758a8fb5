import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { findOrder, refundOrder } from '../orders.ts'

/** A high-risk write: it waits until a person approves, and says how to undo it. */
const refund: ToolDefinition = toolFrom(
  {
    name: 'refund',
    description: 'Pays the money for an order back. A person has to approve it.',
    parameters: {
      type: 'object',
      properties: { order: { type: 'string' }, amount: { type: 'number' } },
      required: ['order', 'amount'],
    },
    run: ({ order: number, amount }: { order?: unknown; amount?: unknown }) => {
      const order = findOrder(number)
      if (amount !== order.amount) throw new Error(`Order ${order.number} cost ${order.amount}.`)
      if (!refundOrder(order.number)) throw new Error(`Order ${order.number} is refunded already.`)
      return { order: order.number, refunded: order.amount }
    },
  },
  {
    risk: 'write_high_risk',
    rollback: (args) => ({
      type: 'tool_call',
      target: 'undo_refund',
      payload: { order: (args as { order: string }).order }, // `run` has checked it
    }),
  },
)

export default refund
