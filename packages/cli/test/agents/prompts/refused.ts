import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { says, scripted } from '@skein/ai/testing'

const refused: PromptDefinition = definePrompt({
  name: 'refused',
  prompt: 'Claim things.',
  model: scripted(() => says('I have looked, believe me.')),
  tools: ['look'],
})

export default refused
