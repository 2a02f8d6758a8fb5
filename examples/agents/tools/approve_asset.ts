import { toolFrom, type ToolDefinition } from '@skein/runtime'

/** The reviewer's word that the work is done; it ends the session of the pair. */
const approveAsset: ToolDefinition = toolFrom(
  {
    name: 'approve_asset',
    description: 'Accepts the draft as it is.',
    parameters: {
      type: 'object',
      properties: { asset: { type: 'string', description: 'The accepted text, word for word.' } },
      required: ['asset'],
    },
    run: ({ asset }: { asset?: unknown }) => {
      if (typeof asset !== 'string' || asset === '') throw new Error('Say which text you accept.')
      return 'accepted'
    },
  },
  { risk: 'read_only' },
)

export default approveAsset
