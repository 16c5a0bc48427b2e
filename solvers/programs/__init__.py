"""Linear, integer and semidefinite programs, solved by HiGHS and Clarabel."""
