import { toolFrom, type ToolDefinition } from '@skein/runtime'

/** Ends the session as failed; what it has written is then undone. */
const giveUp: ToolDefinition = toolFrom(
  {
    name: 'give_up',
    description: 'Ends an exchange that cannot be finished.',
    parameters: {
      type: 'object',
      properties: { why: { type: 'string' } },
      required: ['why'],
    },
    run: ({ why }: { readonly why: string }) => why,
  },
  { risk: 'read_only' },
)

export default giveUp
