import { agentOperations } from '../operations/agents.ts'
import {
  effectOperations,
  envOperations,
  userOperations,
  valueOperations,
  variableOperations,
} from '../operations/contents.ts'
import { approvalOperations, controlOperations, messageOperations } from '../operations/messages.ts'
import { fileOperations } from '../operations/files.ts'
import type { OperationRoute } from '../operations/operation.ts'
import { logOperations, threadOperations } from '../operations/threads.ts'
import { a2aOperations } from './a2a/a2a-operations.ts'
import { agentCardOperations, serverOperations } from './server-operations.ts'
import { agUiOperations } from './chat/ag-ui.ts'
import { chatOperations } from './chat/chat-operations.ts'
import { compatOperations } from './compat/compat-operations.ts'
import { endpointOperations } from './endpoints.ts'
import { mcpOperations } from './mcp/mcp-operations.ts'
import { streamOperations } from './stream/event-stream.ts'

/**
 * The table of operations, from which the server, the OpenAPI document, `docs/http.md` and the tenancy tests
 * are built.
 */
export const ROUTES: readonly OperationRoute[] = [
  ...serverOperations,
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
  ...effectOperations,
  ...endpointOperations,
  ...chatOperations,
  ...agUiOperations,
  ...mcpOperations,
  ...agentCardOperations,
  ...a2aOperations,
  ...compatOperations,
]
