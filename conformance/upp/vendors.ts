/** Every shipped vendor and API with what it is sent and what it answers. */
import { openaiChatCases } from './cases/openai-chat.ts'
import { openaiResponsesCases } from './cases/openai-responses.ts'
import type { VendorCase } from './cases/vendor-case.ts'

export const vendorCases: readonly VendorCase[] = [...openaiChatCases, ...openaiResponsesCases]
