import { defineTool, type RunnableTool } from '@skein/runtime'
import { z } from 'zod'

const finish: RunnableTool<{ text?: string }> = defineTool({
  name: 'finish',
  description: 'Ends the session of the crew.',
  risk: 'read_only',
  args: z.object({ text: z.string().optional() }),
  execute: () => 'ended',
})

export default finish
