import { defineTool, type ToolDefinition } from '@skein/runtime'
import { z } from 'zod'

const echo: ToolDefinition = defineTool({
  name: 'echo',
  description: 'Says it again.',
  args: z.looseObject({}),
  risk: 'read_only',
  execute: (_, args) => args,
})

export default echo
