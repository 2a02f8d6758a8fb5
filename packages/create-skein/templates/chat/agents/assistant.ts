import { defineAgent } from '@skein/runtime'
import assistant from '../prompts/assistant.ts'

/** The agent that the page talks to, at /agents/assistant/chat. */
export default defineAgent({
  name: 'assistant',
  title: 'Assistant',
  description: 'Keeps your notes.',
  sideA: { label: 'Assistant', prompt: assistant },
})
