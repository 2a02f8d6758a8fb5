import { defineTool } from '@skein/runtime'

export default defineTool({
  name: 'list_notes',
  description: 'Lists all notes.',
  risk: 'read_only',
  execute: (state) => ({ notes: state.getValue('notes') ?? [] }),
})
