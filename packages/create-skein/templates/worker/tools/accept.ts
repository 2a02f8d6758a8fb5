import { defineTool } from '@skein/runtime'
import { z } from 'zod'

const MAX_WORDS = 8

/** The stop rule. Code has the last word: what a model accepts is checked, and refused with a reason. */
export default defineTool({
  name: 'accept',
  description: 'Accepts the slogan as it is and ends the work.',
  args: z.object({ slogan: z.string().min(1).describe('The accepted slogan, word for word.') }),
  risk: 'read_only',
  execute: (_, { slogan }) => {
    const words = slogan.split(/\s+/).length
    if (words > MAX_WORDS) throw new Error(`It has ${words} words; ${MAX_WORDS} are allowed.`)
    return 'accepted'
  },
})
