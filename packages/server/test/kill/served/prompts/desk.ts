import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { obedient } from '../model.ts'

const desk: PromptDefinition = definePrompt({
  name: 'desk',
  prompt: 'You do what you are asked for.',
  tools: ['send', 'put', 'ship', 'pay', 'crew'],
  model: obedient('desk'),
})

export default desk
