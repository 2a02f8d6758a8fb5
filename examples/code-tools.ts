import { tool, type Tool } from '@skein/ai'
import { z } from 'zod'

const path = z.object({ path: z.string() })

/** Tools over a handful of files in memory, for the examples about agents. */
export function codeTools(
  files: Map<string, string>,
): Record<'Read' | 'Write' | 'Grep' | 'Bash', Tool> {
  return {
    Read: tool({
      name: 'read_file',
      description: 'The text of a file.',
      parameters: path,
      run: ({ path: name }) => files.get(name) ?? `${name}: no such file`,
    }),
    Write: tool({
      name: 'write_file',
      description: 'Replaces a file.',
      parameters: path.extend({ text: z.string() }),
      run: ({ path: name, text }) => {
        files.set(name, text)
        return `${name} is written.`
      },
    }),
    Grep: tool({
      name: 'grep',
      description: 'Names of the files that contain a text.',
      parameters: z.object({ text: z.string() }),
      run: ({ text }) => [...files].filter(([, line]) => line.includes(text)).map(([name]) => name),
    }),
    Bash: tool({
      name: 'bash',
      description: 'Runs a command.',
      parameters: z.object({ command: z.string() }),
      run: ({ command }) => `${command}: ok`,
    }),
  }
}
