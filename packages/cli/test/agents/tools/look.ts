import { defineTool, type ToolDefinition } from '@skein/runtime'

const look: ToolDefinition = defineTool({
  name: 'look',
  description: 'Looks around.',
  risk: 'read_only',
  execute: () => 'nothing new',
})

export default look
