import type { OperationRoute } from '../../operations/operation.ts'
import { inferenceOperation } from '../agents-as-models/inference-operation.ts'

const question = [{ role: 'user', content: 'Hello' }]

/** The operations that ordinary clients of Anthropic call, with agents as models. */
export const anthropicOperations: readonly OperationRoute[] = [
  inferenceOperation('messages', { body: { model: 'desk', max_tokens: 1000, messages: question } }),
]
