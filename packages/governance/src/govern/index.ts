export { governAiSdk } from './ai-sdk.ts'
export { governLangChain } from './langchain.ts'
export { governOpenAiAgents } from './openai-agents.ts'
