import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { says, scripted, waits } from '@skein/ai/testing'

/** Begins to speak and hangs, until it is asked by a process without the variable. */
const slow: PromptDefinition = definePrompt({
  name: 'slow',
  prompt: 'Take your time.',
  model: scripted(() =>
    process.env['SKEIN_TEST_HANGS'] === undefined
      ? says('Finished.')
      : [says('Thinking about it'), waits(Infinity)],
  ),
})

export default slow
