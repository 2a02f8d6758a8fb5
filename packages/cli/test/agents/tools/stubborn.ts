import { defineTool, type ToolDefinition } from '@skein/runtime'

/** Never ends, no matter who asks it to. */
const stubborn: ToolDefinition = defineTool({
  name: 'stubborn',
  description: 'Does not listen.',
  risk: 'read_only',
  execute: () => new Promise<string>(() => undefined),
})

export default stubborn
