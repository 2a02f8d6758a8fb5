import { endpointOperations } from './endpoint-operations.ts'
import { serverOperations } from './server-operations.ts'
import { agentOperations } from '../operations/agents.ts'
import { approvalOperations } from '../operations/approvals.ts'
import { controlOperations } from '../operations/control.ts'
import { effectOperations } from '../operations/effects.ts'
import { envOperations } from '../operations/env.ts'
import { fileOperations } from '../operations/files.ts'
import { grantOperations } from '../operations/grants.ts'
import { logOperations } from '../operations/logs.ts'
import { messageOperations } from '../operations/messages.ts'
import type { OperationRoute } from '../operations/operation.ts'
import { threadOperations } from '../operations/threads.ts'
import { userOperations } from '../operations/users.ts'
import { valueOperations } from '../operations/values.ts'
import { variableOperations } from '../operations/variables.ts'
import { a2aOperations } from '../protocols/a2a/a2a-operations.ts'
import { agentCardOperations } from '../protocols/a2a/agent-card.ts'
import { agUiOperations } from '../protocols/ag-ui/ag-ui-operations.ts'
import { modelOperations } from '../protocols/agents-as-models/inference-operation.ts'
import { aiSdkOperations } from '../protocols/ai-sdk/ai-sdk-operations.ts'
import { anthropicOperations } from '../protocols/anthropic/anthropic-operations.ts'
import { mcpOperations } from '../protocols/mcp/mcp-operations.ts'
import { openAiOperations } from '../protocols/openai/openai-operations.ts'
import { streamOperations } from '../streams/stream-operations.ts'
import { studioOperations } from '../studio/studio-operations.ts'

/**
 * The table of operations, from which the server, the OpenAPI document, `docs/http.md` and the tenancy tests
 * are built.
 */
export const ROUTES: readonly OperationRoute[] = [
  ...serverOperations,
  ...studioOperations,
  ...agentOperations,
  ...threadOperations,
  ...messageOperations,
  ...controlOperations,
  ...streamOperations,
  ...logOperations,
  ...fileOperations,
  ...valueOperations,
  ...userOperations,
  ...envOperations,
  ...variableOperations,
  ...approvalOperations,
  ...grantOperations,
  ...effectOperations,
  ...endpointOperations,
  ...aiSdkOperations,
  ...agUiOperations,
  ...mcpOperations,
  ...agentCardOperations,
  ...a2aOperations,
  ...openAiOperations,
  ...anthropicOperations,
  ...modelOperations,
]
