import { defineTool } from '@skein/runtime'
import { z } from 'zod'

/** A high-risk write: every call waits until a person approves it, in the page, in Studio or with `skein inbox`. */
export default defineTool({
  name: 'delete_note',
  description: 'Deletes a note. A person has to approve it.',
  args: z.object({ text: z.string() }),
  risk: 'write_high_risk',
  rollback: ({ text }) => ({ type: 'tool_call', target: 'add_note', payload: { text } }),
  execute: (state, { text }) => {
    const notes = state.getValue('notes')
    const left = Array.isArray(notes) ? notes.filter((note) => note !== text) : []
    if (!Array.isArray(notes) || left.length === notes.length)
      throw new Error(`There is no note "${text}".`)
    state.setValue('notes', left)
    return { deleted: text }
  },
})
