import { toolFrom, type ToolDefinition } from '@skein/runtime'

const echo: ToolDefinition = toolFrom(
  {
    name: 'echo',
    description: 'Says it again.',
    parameters: { type: 'object', properties: {} },
    run: (args) => args,
  },
  { risk: 'read_only' },
)

export default echo
