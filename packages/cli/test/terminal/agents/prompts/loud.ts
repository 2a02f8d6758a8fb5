import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { calls, fails, says, scripted } from '@skein/ai/testing'
import { HIDDEN_ARGUMENT, HOSTILE, SPACES } from '../../hostile-texts.ts'

const everything = Object.values(HOSTILE).join('\n')

/** Says, calls, pays or fails, with everything that harms a terminal in it. */
const loud: PromptDefinition = definePrompt({
  name: 'loud',
  prompt: 'Be loud.',
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.type === 'tool_result') return says(`After the call: ${everything} That is all.`)
    const text = last?.type === 'user' ? last.text : ''
    if (text.includes('fail')) return fails({ code: 'INVALID_REQUEST', message: everything })
    if (text.includes('call')) return calls('echo', { [everything]: everything })
    if (text.includes('pay'))
      return calls('pay', { amount: 1, note: `${everything}${SPACES}`, to: HIDDEN_ARGUMENT })
    return says(`The words: ${everything} That is all.`)
  }),
  tools: ['echo', 'pay'],
})

export default loud
