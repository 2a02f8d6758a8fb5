// Tools that vendors run on their own servers, as values of `params.tools`. They can be combined with tools of your
// own, which are in the option `tools` of `llm`:
//
//     llm({ model: openai('gpt-5'), tools: [mine], params: { tools: [openaiTools.webSearch()] } })
//
// The names of options are the vendors' own; a type test compares them with the SDKs. The calls and results of these
// tools are in the messages as native blocks; `usage.serverToolUse` counts them where the vendor does.
//
// Each file has its own small types and exports none of them: an exported type that users cannot import would keep
// their packages from writing declarations.

export { anthropicTools } from './anthropic.ts'
export { googleTools } from './google.ts'
export { openaiTools } from './openai.ts'
export { openrouterTools } from './openrouter.ts'
export { xaiTools } from './xai.ts'
