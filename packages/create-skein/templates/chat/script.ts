import { calls } from '@skein/ai/testing'
import type { Script } from './model.ts'

/** How the assistant behaves without a model. Delete this file when you have a key. */
export const script: Script = ({ text, results }) => {
  const [answer] = Object.values(results)
  if (answer?.isError) return `That did not happen: ${String(answer.value)}`
  const { noted, deleted, notes } = (answer?.value ?? {}) as Answer
  if (noted !== undefined) return `I have written down: ${noted}`
  if (deleted !== undefined) return `I have deleted: ${deleted}`
  if (notes?.length === 0) return 'There are no notes.'
  if (notes) return `Your notes:\n\n${notes.map((note) => `- ${note}`).join('\n')}`
  const [, verb = '', what = ''] =
    /^(note|remember|delete|forget) (.+?)\.?$/i.exec(text.trim()) ?? []
  if (/note|remember/i.test(verb)) return calls('add_note', { text: what })
  if (verb !== '') return calls('delete_note', { text: what })
  if (/notes|list|what/i.test(text)) return calls('list_notes')
  return `This is a scripted model; no key is used. You can say:

- **note buy milk**
- **what are my notes?**
- **delete buy milk**, which you will have to approve

A key in \`.env\` gives you a real model.`
}

/** What the tools return. */
interface Answer {
  readonly noted?: string
  readonly deleted?: string
  readonly notes?: readonly string[]
}
