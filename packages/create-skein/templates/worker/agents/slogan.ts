import { defineAgent } from '@skein/runtime'
import reviewer from '../prompts/reviewer.ts'
import writer from '../prompts/writer.ts'
import accept from '../tools/accept.ts'

/**
 * Two models talk to each other: side A writes, side B reviews. The session ends when the reviewer calls `accept`;
 * its property `slogan` is the result. After twelve turns without agreement it fails.
 */
export default defineAgent({
  name: 'slogan',
  title: 'Writer and reviewer',
  description: 'Writes a slogan and reviews it until it is good.',
  type: 'dual_ai',
  maxSessionTurns: 12,
  // Other agents may list it among their tools.
  exposeAsTool: true,
  toolDescription: 'Has a slogan written and reviewed.',
  sideA: { label: 'Writer', prompt: writer },
  sideB: {
    label: 'Reviewer',
    prompt: reviewer,
    sessionStop: { name: accept, messageProperty: 'slogan' },
  },
})
