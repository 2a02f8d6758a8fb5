export { governAiSdk, type AiSdkInput, type AiSdkOwnTool } from './ai-sdk.ts'
export type { ApprovalDesk, GovernOptions, Tiered } from './gate.ts'
export {
  governLangChain,
  type CallAnswer,
  type LangChainInput,
  type LangChainOwnTool,
} from './langchain.ts'
export { governOpenAiAgents, type OpenAiAgentsOwnTool } from './openai-agents.ts'
