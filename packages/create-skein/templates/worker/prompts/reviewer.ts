import { definePrompt } from '@skein/runtime'
import { model } from '../model.ts'
import { reviewer } from '../script.ts'
import accept from '../tools/accept.ts'

export default definePrompt({
  name: 'reviewer',
  prompt:
    'You review slogans. A good one names the thing and has at most eight words. ' +
    'Say in one sentence what to improve, or accept the slogan with the tool.',
  model: model(reviewer),
  tools: [accept],
})
