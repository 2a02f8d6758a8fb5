import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'

const payer: PromptDefinition = definePrompt({
  name: 'payer',
  prompt: 'You pay.',
  model: scripted(({ messages }) => {
    const last = messages.at(-1)
    return last?.type === 'user' && last.text === 'Pay.' ? calls('pay') : says('Done.')
  }),
})

export default payer
