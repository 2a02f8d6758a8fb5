import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { calls, scripted } from '@skein/ai/testing'

const limited: PromptDefinition = definePrompt({
  name: 'limited',
  prompt: 'Look.',
  model: scripted(() => calls('look')),
  tools: ['look'],
})

export default limited
