"""Every claim of every finding, recomputed from the plain file by a slow reader that shares no code with the
package.
"""
