import type { OperationRoute } from '../../operations/operation.ts'
import { inferenceOperation } from '../agents-as-models/inference-operation.ts'

const question = [{ role: 'user', content: 'Hello' }]

/** The operations that ordinary clients of OpenAI call, with agents as models. */
export const openAiOperations: readonly OperationRoute[] = [
  inferenceOperation('chatCompletions', { body: { model: 'desk', messages: question } }),
  inferenceOperation('responses', { body: { model: 'desk', input: 'Hello' } }),
]
