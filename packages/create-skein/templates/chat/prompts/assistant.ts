import { definePrompt } from '@skein/runtime'
import { model } from '../model.ts'
import { script } from '../script.ts'
import addNote from '../tools/add_note.ts'
import deleteNote from '../tools/delete_note.ts'
import listNotes from '../tools/list_notes.ts'

export default definePrompt({
  name: 'assistant',
  prompt:
    'You keep the notes of one person. Look at the notes before you speak about them. ' +
    'If a call was denied, say so. Be brief.',
  model: model(script),
  tools: [addNote, listNotes, deleteNote],
})
