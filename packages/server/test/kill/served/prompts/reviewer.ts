import { calls, scripted } from '@skein/ai/testing'
import { definePrompt, type PromptDefinition } from '@skein/runtime'

const reviewer: PromptDefinition = definePrompt({
  name: 'reviewer',
  prompt: 'You end the session.',
  tools: ['finish'],
  model: scripted(() => [calls('finish', { text: 'reviewed' })], { modelId: 'reviewer' }),
})

export default reviewer
