import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { findOrder, undoRefund as undo } from '../orders.ts'

/** The inverse of `refund`. No prompt lists it; the governor calls it. */
const undoRefund: ToolDefinition = toolFrom(
  {
    name: 'undo_refund',
    description: 'Takes a refund back.',
    parameters: {
      type: 'object',
      properties: { order: { type: 'string' } },
      required: ['order'],
    },
    run: ({ order: number }: { order?: unknown }) => {
      const order = findOrder(number)
      undo(order.number)
      return { order: order.number, status: findOrder(order.number).status }
    },
  },
  { risk: 'write_low_risk', idempotent: true },
)

export default undoRefund
