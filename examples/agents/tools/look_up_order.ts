import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { findOrder } from '../orders.ts'

/** Reading needs no one's permission. Plain JSON Schema here; `defineTool` takes Zod and others. */
const lookUpOrder: ToolDefinition = toolFrom(
  {
    name: 'look_up_order',
    description: 'Finds an order by its number, e.g. O-7.',
    parameters: {
      type: 'object',
      properties: { order: { type: 'string' } },
      required: ['order'],
    },
    run: ({ order }: { order?: unknown }) => {
      const { number, item, amount, status } = findOrder(order)
      return { order: number, item, amount, status }
    },
  },
  { risk: 'read_only' },
)

export default lookUpOrder
