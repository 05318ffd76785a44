"""`hta-widgets mcp`: a server of the Model Context Protocol, whose tools answer as the command line does.

It reads below the folders that were named at the start, and nothing else; it writes nothing, asks no model
and opens no connection unless URLs are allowed. Each tool is a command with the arguments that its schema
lists, so that its answer is the command's, byte for byte.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hta_widgets.cli.exits import Exit, UsageError
from hta_widgets.cli.mcp_answers import Roots, answered, refused
from hta_widgets.cli.mcp_tools import TOOLS
from hta_widgets.cli.opening import kept_open
from hta_widgets.cli.skill import SKILL
from hta_widgets.version import __version__

if TYPE_CHECKING:
    from mcp.server import Server

_NAME: Final = "hta-widgets"
_SKILL: Final = "hta-widgets://skill"
_SCHEMA: Final = "hta-widgets://schema/evidence"
_MOST_OPEN: Final = 4
_INSTRUCTIONS: Final = (
    "Each command that follows is a tool of this server: call diagnose, analyze, event, what_if (what-if), "
    "compare (diff), check and health with the arguments that their schemas list.\n\n"
)


def run(arguments: Namespace) -> Exit:
    """Serve on standard input and output until the client goes away.

    Raises:
        UsageError: the package `mcp` is not installed, or a root does not exist.
    """
    roots = Roots.of(arguments.roots, arguments.allow_urls)
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise UsageError("the server needs a package: pip install 'hta_widgets[mcp]'") from error

    async def serve() -> None:
        server = server_of(roots)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    with kept_open(_MOST_OPEN):
        anyio.run(serve)
    return Exit.FINE


def server_of(roots: Roots) -> Server[Any]:
    """The server, which answers about what lies below `roots`."""
    import anyio
    import anyio.to_thread
    from mcp import types
    from mcp.server import Server

    one_at_a_time = anyio.CapacityLimiter(1)  # an analysis uses all cores

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        read_only = types.ToolAnnotations(read_only_hint=True, open_world_hint=roots.urls)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=dict(tool.schema),
                    annotations=read_only,
                )
                for tool in TOOLS.values()
            ]
        )

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given: Mapping[str, Any] = params.arguments or {}
        text, failed = await anyio.to_thread.run_sync(
            partial(_answer, roots, params.name, given), limiter=one_at_a_time
        )
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    async def list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(name="skill", uri=_SKILL, mime_type="text/markdown"),
                types.Resource(name="evidence schema", uri=_SCHEMA, mime_type="application/json"),
            ]
        )

    async def read_resource(
        _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri not in (_SKILL, _SCHEMA):
            raise ValueError(f"there is no resource {uri!r}: {_SKILL}, {_SCHEMA}")
        from hta_widgets.analysis.evidence.document import SCHEMA_FILE

        path, kind = (SKILL, "text/markdown") if uri == _SKILL else (SCHEMA_FILE, "application/json")
        text = path.read_text(encoding="utf-8")
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, mime_type=kind, text=text)]
        )

    return Server(
        _NAME, version=__version__, instructions=_INSTRUCTIONS + SKILL.read_text(encoding="utf-8"),
        on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_read_resource=read_resource,
    )  # fmt: skip


def _answer(roots: Roots, name: str, given: Mapping[str, Any]) -> tuple[str, bool]:
    """The text of a tool's answer, and whether it is an error."""
    tool = TOOLS.get(name)
    if tool is None:
        return json.dumps(refused(UsageError(f"there is no tool {name!r}: {', '.join(TOOLS)}"))), True
    return answered(roots, tool, given)
