import { definePrompt } from '@skein/runtime'
import { model } from '../model.ts'
import { writer } from '../script.ts'

export default definePrompt({
  name: 'writer',
  prompt:
    'You write slogans. Answer with the slogan alone. Improve it when you are given a reason.',
  model: model(writer),
})
