import { toolFrom, type ToolDefinition } from '@skein/runtime'

/** What an answer about an order has to rest on. */
const lookUpOrder: ToolDefinition = toolFrom(
  {
    name: 'look_up_order',
    description: 'Reads where an order is.',
    parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
    run: ({ order }: { readonly order: string }) => ({ order, status: 'on its way' }),
  },
  { risk: 'read_only' },
)

export default lookUpOrder
