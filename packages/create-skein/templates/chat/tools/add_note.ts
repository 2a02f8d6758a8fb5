import { defineTool } from '@skein/runtime'
import { z } from 'zod'

/** Notes are a value of the thread: kept in its log, changed together with the result of the call. */
export default defineTool({
  name: 'add_note',
  description: 'Writes a note down.',
  args: z.object({ text: z.string().min(1).max(500) }),
  risk: 'write_low_risk',
  execute: (state, { text }) => {
    state.updateValue('notes', (notes) => [...(Array.isArray(notes) ? notes : []), text])
    return { noted: text }
  },
})
