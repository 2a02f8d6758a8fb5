import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { says, scripted } from '@skein/ai/testing'

const text = `# A heading

A paragraph with **bold words**, \`code\` and snake_case_names, long enough that a terminal of one hundred columns has to wrap it at a word and nowhere else.

- first point
- second point, which is long as well, so that its second row has to begin below the words and not below the bullet
1. numbered

> quoted

\`\`\`ts
const answer = 6 * 7 // **not bold**, and this line is far longer than the terminal is wide, yet it is not wrapped at all
\`\`\`
2 * 3 * 4 is no emphasis.`

/** Answers with everything that Markdown has and a terminal can show. */
const writer: PromptDefinition = definePrompt({
  name: 'writer',
  prompt: 'Write.',
  model: scripted(() => says(text)),
})

export default writer
