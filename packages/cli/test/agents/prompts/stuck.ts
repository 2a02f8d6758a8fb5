import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { calls, scripted } from '@skein/ai/testing'

const stuck: PromptDefinition = definePrompt({
  name: 'stuck',
  prompt: 'Call it.',
  model: scripted(() => calls('stubborn')),
  tools: ['stubborn'],
})

export default stuck
