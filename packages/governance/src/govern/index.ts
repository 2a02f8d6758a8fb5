export { governAiSdk } from './ai-sdk.ts'
export type { GovernOptions, SigningDesk } from './gate.ts'
export { governLangChain, type CallAnswer } from './langchain.ts'
export { governOpenAiAgents } from './openai-agents.ts'
