import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { obedient } from '../model.ts'

const worker: PromptDefinition = definePrompt({
  name: 'worker',
  prompt: 'You do what you are asked for.',
  tools: ['send', 'pay'],
  model: obedient('worker'),
})

export default worker
