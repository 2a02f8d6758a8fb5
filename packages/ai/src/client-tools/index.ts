export { anthropicClientTools } from './anthropic.ts'
export { openaiClientTools } from './openai.ts'
