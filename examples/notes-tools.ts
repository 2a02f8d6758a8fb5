import { tool, type Tool } from '@skein/ai'
import { readdir, readFile, realpath, rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { z } from 'zod'

const name = z.string().regex(/^[\w-]+\.md$/, 'a file name such as todo.md')

/**
 * Tools for a folder of notes. A model may be talked into anything, so none of them trusts its
 * arguments: names are checked, paths must stay in the folder, deleting asks a person.
 */
export function notesTools(folder: string, approve: (file: string) => Promise<boolean>): Tool[] {
  return [
    tool({
      name: 'read_note',
      description: 'The text of a note.',
      parameters: z.object({ name }),
      run: async ({ name: file }) => readFile(await inside(folder, file), 'utf8'),
    }),
    tool({
      name: 'find_notes',
      description: 'Names of the notes that contain a text.',
      parameters: z.object({ text: z.string().min(1).max(200) }),
      run: async ({ text }) => {
        const found: string[] = []
        for (const file of (await readdir(folder)).sort()) {
          const path = await inside(folder, file).catch(() => undefined)
          // Matched as plain text: a pattern from a model could run forever.
          if (path && (await readFile(path, 'utf8')).includes(text)) found.push(file)
        }
        return found
      },
    }),
    tool({
      name: 'delete_note',
      description: 'Deletes a note.',
      parameters: z.object({ name }),
      approval: ({ name: file }) => approve(file),
      run: async ({ name: file }) => {
        await rm(await inside(folder, file))
        return `${file} is deleted.`
      },
    }),
  ]
}

/** The file's real path, refused when a link leads out of the folder. */
async function inside(folder: string, file: string): Promise<string> {
  const [home, path] = await Promise.all([realpath(folder), realpath(join(folder, file))])
  if (!path.startsWith(home + sep)) throw new Error(`${file} is not a note.`)
  return path
}
