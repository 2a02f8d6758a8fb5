import { ErrorCode } from '@skein/ai'
import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { fails, scripted } from '@skein/ai/testing'

const failing: PromptDefinition = definePrompt({
  name: 'failing',
  prompt: 'Fail.',
  model: scripted(() => fails({ message: 'No such model.', code: ErrorCode.InvalidRequest })),
})

export default failing
