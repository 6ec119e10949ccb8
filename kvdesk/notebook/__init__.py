"""Cells to take along: of a `llama_cpp.Llama` in anybody's program (`kvdesk.watch(llama)`), and of a recording.

    watch           the calls of that object, from the first on     cell_map   the cells as HTML, for a notebook
    recording_page  a recording as a page with a slider             trace      a recording for Chrome and Perfetto

`watch` needs llama-cpp-python through that object alone: nothing here imports it, and no Qt.
"""
