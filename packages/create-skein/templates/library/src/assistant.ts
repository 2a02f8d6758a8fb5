import { agent, type Agent } from '@skein/agents'
import { tool, type ModelReference } from '@skein/ai'
import { z } from 'zod'

/** The types of `text` and of the result come from the schema and the function. */
export const countWords = tool({
  name: 'count_words',
  description: 'Counts the words of a text.',
  parameters: z.object({ text: z.string() }),
  run: ({ text }) => text.split(/\s+/).filter((word) => word !== '').length,
})

/** An agent is a function of an input and a state; it keeps nothing between two calls. */
export function createAssistant(model: ModelReference): Agent {
  return agent({ model, system: 'You count words with the tool. Be brief.', tools: [countWords] })
}
