/** Every shipped vendor and API with what it is sent and what it answers. */
import { anthropicCases } from './cases/anthropic.ts'
import { bedrockCases } from './cases/bedrock.ts'
import { googleCases } from './cases/google.ts'
import { googleInteractionsCases } from './cases/google-interactions.ts'
import { ollamaCases } from './cases/ollama.ts'
import { openaiChatCases } from './cases/openai-chat.ts'
import { openaiResponsesCases } from './cases/openai-responses.ts'
import type { VendorCase } from './cases/vendor-case.ts'

export const vendorCases: readonly VendorCase[] = [
  ...openaiChatCases,
  ...openaiResponsesCases,
  ...anthropicCases,
  ...bedrockCases,
  ...googleCases,
  ...googleInteractionsCases,
  ...ollamaCases,
]
