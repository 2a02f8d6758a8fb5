export { openAiAgentsModel } from './openai-agents-model.ts'
export { type OpenAiAgentsTool, openAiAgentsTools } from './openai-agents-tools.ts'
